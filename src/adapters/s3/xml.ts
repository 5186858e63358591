import { AppError } from '../../errors.ts'

/** Returns the inner text of each element. Responses of S3 are flat and have no relevant attributes. */
export const elementsOf = (xml: string, name: string): string[] =>
  Array.from(
    xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>(.*?)</${name}>`, 'gs')),
    ([, inner = '']) => inner,
  )

/** Returns the text of the first element of that name, or null. */
export const textOf = (xml: string, name: string): string | null => {
  const [inner] = elementsOf(xml, name)
  return inner === undefined
    ? null
    : inner.replace(/&(#x?[0-9a-fA-F]+|\w+);/g, (whole, name: string) => entityOf(name) ?? whole)
}

/** Returns the text of an element that S3 always sends. */
export const required = (xml: string, name: string): string => {
  const text = textOf(xml, name)
  if (text === null) throw new AppError('unavailable', `S3 answered without ${name}`)
  return text
}

/** Returns the name of the outermost element. */
export const rootOf = (xml: string): string | null => /<([A-Za-z]\w*)[\s/>]/.exec(xml)?.[1] ?? null

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const entityOf = (name: string): string | undefined => {
  if (!name.startsWith('#')) return entities[name]
  return String.fromCodePoint(Number(name.startsWith('#x') ? `0${name.slice(1)}` : name.slice(1)))
}
