"""External sorting of files, mapped arrays and device data larger than memory: runs, exact splitters, buckets."""
