"""A link to another file of the submission, which could be another one whenever it is looked at.

Stopped by: nothing but that name is copied, so the link leads nowhere; and a link is no file.
"""

import os

os.rename("fixed_model.pth", "elsewhere.pth")
os.symlink("elsewhere.pth", "fixed_model.pth")
