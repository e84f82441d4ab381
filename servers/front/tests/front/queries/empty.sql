empty
