"""External sorting: what outgrows memory is sorted in runs, cut exactly, and sorted once more bucket by bucket."""
