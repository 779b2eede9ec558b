"""Print sum, mean, smallest and largest of numbers: stats.py [FILE]"""

import sys


def main(args):
    try:
        with open(args[0]) if args else sys.stdin as source:
            numbers = [float(word) for word in source.read().split()]
    except (OSError, ValueError) as error:
        print(f"stats.py: {error}", file=sys.stderr)
        return 2
    if not numbers:
        print("stats.py: no numbers", file=sys.stderr)
        return 2
    print(f"sum {sum(numbers):g}")
    print(f"mean {sum(numbers) / len(numbers):g}")
    print(f"min {min(numbers):g}")
    print(f"max {max(numbers):g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
