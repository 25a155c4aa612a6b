"""The captioner whose LSTM attends to the patches."""

from vitcapr.models.lstm_captioners import PatchAttentionCaptioner

CAPTIONER = PatchAttentionCaptioner
