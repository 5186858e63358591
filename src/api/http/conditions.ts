/** Whether a client that sends `If-None-Match` has the content already (RFC 9110, 13.1.2: compared weakly). */
export const isKnown = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch.trim() === '*' || [...ifNoneMatch.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag)

export interface Range {
  /** Both ends included. */
  readonly from: number
  readonly to: number
}

/**
 * The one range of bytes that a `Range` header asks for; null: all of it, since a server may ignore what it does not
 * understand, several ranges included; `'none'`: there are no such bytes (RFC 9110, 14.2).
 */
export const rangeOf = (header: string, size: number): Range | 'none' | null => {
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header) ?? []
  if (first === '' && last === '') return null
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'none' : { from: size - length, to: size - 1 }
  }
  const from = Number(first)
  const to = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < from) return null
  return from >= size ? 'none' : { from, to }
}

/** Whether a range may be sent to who sends `If-Range`: what they have a part of is what there is now. */
export const isSame = (ifRange: string, { etag, modified }: { etag: string; modified: string }): boolean =>
  ifRange === '' || ifRange === etag || ifRange === modified
