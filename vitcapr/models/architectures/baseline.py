"""The captioner that adds the CLS vector to the state of its LSTM."""

from vitcapr.models.lstm_captioners import BaselineCaptioner

CAPTIONER = BaselineCaptioner
