/** Bytes of an object or array, and of each of its fields or elements. */
const OBJECT_BYTES = 48
const FIELD_BYTES = 8

/** Estimates the memory of JSON values. Many small objects take several times the length of their text. */
export const heapBytesOf = (value: unknown): number => {
  if (typeof value === 'string') return FIELD_BYTES + value.length
  if (typeof value !== 'object' || value === null) return FIELD_BYTES
  if (ArrayBuffer.isView(value)) return OBJECT_BYTES + value.byteLength
  let bytes = OBJECT_BYTES
  if (Array.isArray(value)) for (const element of value) bytes += FIELD_BYTES + heapBytesOf(element)
  else for (const name in value) bytes += FIELD_BYTES + heapBytesOf((value as Record<string, unknown>)[name])
  return bytes
}
