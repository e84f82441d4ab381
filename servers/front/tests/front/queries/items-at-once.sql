items at once
