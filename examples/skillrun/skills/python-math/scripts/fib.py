"""Print the first N Fibonacci numbers, one a line: fib.py N"""

import sys


def fibonacci(count):
    a, b = 0, 1
    for _ in range(count):
        yield a
        a, b = b, a + b


def main(args):
    if len(args) != 1 or not args[0].isdecimal():
        print("usage: fib.py N", file=sys.stderr)
        return 2
    for number in fibonacci(int(args[0])):
        print(number)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
