"""Triton kernels for NVIDIA GPUs, with gradients. Each has a plain reference of the same signature.

    lstm.py, lstm_kernels.py   `model.lstm.projected_lstm`, the LSTM of the biLM
    char_cnn.py                `model.char_cnn.conv_max`, the convolutions of the character CNN
    softmax.py                 `sampled_nll`, the sampled softmax of pre-training, with its reference and its sampler
    highway_lstm.py            `model.highway_lstm.highway_recurrence`, the LSTM of the SRL network
    gru.py                     `model.recurrent.gru_recurrence`, the GRUs of the reading network
    activations.py             the activation functions that they share

`pyelmo.kernels.choice.fast` chooses between a kernel and its reference.
"""
