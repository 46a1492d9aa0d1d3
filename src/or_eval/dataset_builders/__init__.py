"""Building data sets: recipes, their stages, the pipeline that runs them, and publishing."""
