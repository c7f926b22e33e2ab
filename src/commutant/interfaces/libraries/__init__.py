"""What libraries offer: models for the target `library` (docs/guides/libraries.md)."""
