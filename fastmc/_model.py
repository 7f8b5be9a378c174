class Model:
    def __init__(self, weights, classes, **kw):
        self.weights=weights; self.classes_=classes; self.__dict__.update(kw); self.dual_=kw['dual']
def load_model(p): pass
