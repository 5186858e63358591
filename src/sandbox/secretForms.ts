/** An encoded value or a line of it is searched from this length on. */
const MIN_FORM = 8

/** The value as it may appear in a text: itself, escaped, encoded, and its lines. */
export const formsOf = (value: string): Set<string> => {
  const bytes = Buffer.from(value)
  const escaped = escapedIn(value)
  const lines = value.split(/\r?\n/).map((line) => line.trim())
  const encoded = [
    encodeURI(value.toWellFormed()),
    encodeURIComponent(value.toWellFormed()),
    new URLSearchParams([['', value]]).toString().slice(1),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...[0, 1, 2].flatMap((offset) => base64FormsOf(bytes, offset)),
  ]
  const long = [...encoded, ...(lines.length > 1 ? lines : [])].filter(({ length }) => length >= MIN_FORM)
  return new Set([value, escaped, escapedIn(escaped), ...long])
}

const escapedIn = (text: string): string => JSON.stringify(text).slice(1, -1)

/**
 * The characters of base64 that depend on the value alone, when it begins at this offset of three bytes: where more
 * bytes follow, and where it is at the end.
 */
const base64FormsOf = (bytes: Buffer, offset: number): string[] => {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  const from = Math.ceil((offset * 4) / 3)
  const own = text.slice(from, Math.floor(((offset + bytes.length) * 4) / 3))
  return [own, text.slice(from).replace(/=+$/, '')].flatMap((form) => [
    form,
    form.replaceAll('+', '-').replaceAll('/', '_'),
  ])
}
