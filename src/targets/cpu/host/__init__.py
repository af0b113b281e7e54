"""The CPU's fast paths for host arrays, by NumPy, by compiled loops, or both. Who calls whom, from left to right:

    fast_paths     chooses for an operation
      sort_path    sorts: short arrays by NumPy alone; rows seen to be in order, or of a handful of words, by `at_sight`
        sort       rows of any length by one of
          row_networks    many short rows, side by side in vectors
          radix_sort      where NumPy's own sort is slow, which `numpy_speed` measures
          partition_sort  a long row: parted by all threads (`partition`), its parts sorted by NumPy (`numpy_pointer`)
          counting        a long row of bytes or pairs of bytes, or of few different elements
          crew_rows       many rows, by threads that wait in compiled code
          numpy_sort      all else: NumPy's sort in our order, with zeros and NaNs put back (`signed_bits`)
      argsort_path  argsorts: of numbers that ascend as the elements should
        argsort    row_networks, crew_rows, counting, radix_sort, NumPy, or
          packed_argsort  a rank and an index make a word: these are sorted
      top_k        `select_loops` for a few of each row, else thresholds by NumPy
      reduce       `regrouped` by NumPy, or else NumPy, or `reduce_plans` for `reduce_loops`: which of these two, the
                   first calls find out (`autotuned`) where the bits are the same; argmin and argmax by `arg_reduce`,
                   likewise
      cumsum       `regrouped` by NumPy, or loops of its own
      keyed

All know `key_words`, which makes integers of elements that compare as these should, `strides`, the layouts, and
`copies`, which packs arrays (`transpose` where neighbours lie along another axis).
"""
