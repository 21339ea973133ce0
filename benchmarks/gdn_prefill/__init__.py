"""FlashInfer's gated-delta-rule prefill, unmodified, with and without `cute-zero-mma`."""
