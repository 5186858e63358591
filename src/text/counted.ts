const numbers = new Intl.NumberFormat('en-US')

/** A number with its noun, such as `1 key` and `2,000 keys`. */
export const counted = (value: number, noun: string): string =>
  `${numbers.format(value)} ${noun}${value === 1 ? '' : 's'}`
