"""Many runs from one plan file: plans, parallel jobs and the paper's Table 1."""
