"""What other packages may write: complete extensions, as their authors would."""
