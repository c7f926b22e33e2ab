"""Conditions in words: the vocabulary of an interface, sentences, SMT-LIB."""
