item
