"""MindIE MS in the embedded cluster: Controllers, Coordinators and a push target.

They behave as the real consumer does, weaknesses included, and know nothing of the product: they are the
independent judge of what is delivered. Entry: `programs.program_factory`.
"""
