/** The first characters of a text. A slice would keep the whole text in memory as long as it is kept itself. */
export const beginningOf = (text: string, length: number): string =>
  text.length <= length ? text : text.slice(0, length).split('').join('')
