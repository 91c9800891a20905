"""Host shadows of small device tensors: what a program reads back from a null GPU.

``shadow``       the entry: :class:`ValueShadow`
``dispatch``     sees every operator below autograd without changing what autograd does
``calls``        one call of an operator, and what its schema says
``store``        the shadows, one a storage
``replay``       repeats an operator on the host
``derive``       results that a rule gives to operators on unknown values
``reads``        operators that hand a value, or a size, to the program
``collectives``  what a rank holds after it has spoken with the others
``kernels``      Triton kernels, which write past the dispatcher
``context``      the answers in force and the record of reads
``frames``       the line of the user's code that reads
"""

from vramdoc.worker.values.shadow import ValueShadow

__all__ = ["ValueShadow"]
