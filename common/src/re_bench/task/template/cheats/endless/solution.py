"""Never return; the scorer's time limit must stop this."""


def fit(points):
    del points
    while True:
        pass
