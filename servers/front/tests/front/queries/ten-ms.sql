ten ms
