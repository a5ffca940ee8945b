"""What SGLang imports over its own models of the same names (SGLANG_EXTERNAL_MODEL_PACKAGE)."""
