"""Checks that the program makes of itself on the user's machine: is a resumed run the uninterrupted one?"""
