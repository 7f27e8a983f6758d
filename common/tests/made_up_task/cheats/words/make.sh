printf ten > number
