import fc from 'fast-check'

export type Json = Readonly<Record<string, unknown>>

/** Texts that code often misinterprets. */
export const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'a\0b',
    '..',
    '../..',
    '__proto__',
    'constructor',
    'null',
    '-1',
    '1e9',
    '$ne',
    '\u202e\ufeff',
  ),
  fc.constantFrom('x', 'é', '😀', '\n').map((unit) => unit.repeat(2000)),
)

const deep = fc.constantFrom(50, 3000).map((depth) => {
  let value: unknown = 1
  for (let at = 0; at < depth; at++) value = at % 2 === 0 ? [value] : { a: value }
  return value
})

/** Any JSON value. */
export const wild: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    2 ** 31,
    2 ** 53,
    -(2 ** 63),
    1e308,
    5e-324,
    [],
    {},
    [null],
    { a: null },
  ),
  fc.jsonValue({ maxDepth: 3 }),
  deep,
)

/** The value with one field changed, removed or added. */
export const spoilt = (value: unknown, at: number, instead: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return instead
  const keys = Object.keys(value)
  const key = keys[Math.floor(at / 4) % Math.max(1, keys.length)]
  if (key === undefined || at % 4 === 0) return { ...value, unknown: instead }
  const { [key]: before, ...others } = value as Record<string, unknown>
  if (at % 4 === 1) return others
  return { ...others, [key]: at % 4 === 2 ? instead : spoilt(before, at >> 3, instead) }
}

/** Values that match a JSON schema, including its limits. Strings with a format have their own generators. */
export const valid = (schema: Json): fc.Arbitrary<unknown> => {
  const { type, enum: choices, properties, items, minimum, maximum, minLength, maxLength, pattern } = schema
  const options = schema['anyOf'] as readonly Json[] | undefined
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(choices)) return fc.constantFrom(...(choices as unknown[]))
  if (options) return fc.oneof(...options.map((option) => valid({ ...schema, anyOf: undefined, ...option })))
  if (type === 'integer' || type === 'number') {
    const [min, max] = [Number(minimum ?? -1e9), Number(maximum ?? 1e9)]
    return fc.oneof(
      fc.integer({ min: Math.ceil(min), max: Math.floor(max) }),
      fc.constantFrom(min, max, min - 1, max + 1),
    )
  }
  if (type === 'boolean') return fc.boolean()
  if (type === 'null') return fc.constant(null)
  if (type === 'array')
    return fc.array(valid((items ?? {}) as Json), {
      minLength: Number(schema['minItems'] ?? 0),
      maxLength: 4,
    })
  if (type === 'object') {
    const known = Object.entries((properties ?? {}) as Record<string, Json>)
    if (known.length === 0) {
      const { additionalProperties: value, propertyNames: names } = schema as Readonly<Record<string, Json>>
      const entry = value ? fc.tuple(names ? valid(names) : text, valid(value)) : fc.tuple(text, wild)
      return fc.array(entry, { maxLength: 3 }).map((pairs) => Object.fromEntries(pairs) as unknown)
    }
    return fc.record(Object.fromEntries(known.map(([key, value]) => [key, valid(value)])), {
      requiredKeys: ((schema['required'] ?? []) as readonly string[]).filter((key) =>
        known.some(([name]) => name === key),
      ),
    })
  }
  if (type !== 'string') return wild
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern, 'u'), { size: 'small' })
  const [min, max] = [Number(minLength ?? 0), Number(maxLength ?? 100)]
  return fc.oneof(
    fc.string({ minLength: min, maxLength: Math.min(max, min + 20) }),
    fc.constantFrom(max, max + 1).map((length) => 'n'.repeat(Math.min(length, 100_000))),
    fc.uuid(),
  )
}
