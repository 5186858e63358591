/** A number with its noun, such as `1 key` and `2 keys`; `shown` is the number in another form. */
export const counted = (value: number, noun: string, shown = String(value)): string =>
  `${shown} ${noun}${value === 1 ? '' : 's'}`
