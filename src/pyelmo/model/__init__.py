"""The model of Peters et al. (2018): ids -> layers, in the order of the paper.

    3.1, 3.4  char_cnn.py      the token layer x_k: characters -> a vector without context
              lstm.py          L layers of LSTMs, forward and backward: h_k,1, ..., h_k,L
              softmax.py       p(t_k | context) from the top layer, for pre-training
              bilm.py          the bidirectional language model made of these
    3.2       scalar_mix.py    ELMo_k = gamma * sum_j s_j h_k,j (equation 1)
    3.3       elmo.py          a biLM and its mixes as one module of a task network

highway_lstm.py and recurrent.py have the recurrent layers that the task networks use on top.
"""

from pyelmo.errors import require_torch

require_torch("pyelmo.model (BiLM, Elmo, ScalarMix)")
