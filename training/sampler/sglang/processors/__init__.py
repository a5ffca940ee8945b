"""What SGLang imports in place of its own multimodal processors (SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE)."""
