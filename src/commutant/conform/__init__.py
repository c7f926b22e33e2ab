"""Random sequences of calls, on the model and on the real thing: do both return the same?"""
