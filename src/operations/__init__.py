"""Operations: frozen values that describe a computation on arrays, and know no target and no array library."""
