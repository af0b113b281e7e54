import pandas as pd

from . import DataFrame

def make_meta(x: DataFrame) -> pd.DataFrame: ...
