import type { IncomingMessage } from 'node:http'
import { AppError } from '../../errors.ts'

/** The conditions of a change (RFC 9110, 13.1). */
const OF_CHANGES = ['If-Match', 'If-None-Match', 'If-Unmodified-Since'] as const

/**
 * Throws `bad_request` for a change with a condition: no route checks one, and a change must not be made when its condition is
 * false (RFC 9110, 13.1.1 and 13.1.2).
 */
export const demandUnconditional = ({ headers }: Pick<IncomingMessage, 'headers'>): void => {
  const name = OF_CHANGES.find((each) => headers[each.toLowerCase()] !== undefined)
  if (name !== undefined)
    throw new AppError('bad_request', `${name}: not supported, expected a change without a condition`)
}

/** Whether `If-None-Match` names the current content (RFC 9110, 13.1.2: weak comparison). */
export const isNotModified = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch.trim() === '*' || tagsOf(ifNoneMatch).some((tag) => tag === etag || tag === `W/${etag}`)

/**
 * Throws `precondition_failed` if the current content is not the one that the client asks for (RFC 9110, 13.2.2): `If-Match` names
 * its `ETag` (strong comparison), or there is none and `If-Unmodified-Since` is its time or a later one.
 */
export const demandSame = (
  header: (name: 'If-Match' | 'If-Unmodified-Since') => string,
  { etag, updated_at }: { readonly etag: string; readonly updated_at: string },
): void => {
  const [ifMatch, since] = [header('If-Match').trim(), header('If-Unmodified-Since')]
  if (ifMatch !== '') {
    if (ifMatch === '*' || tagsOf(ifMatch).includes(etag)) return
    throw new AppError('precondition_failed', `If-Match: the content has another ETag: ${etag}`)
  }
  const stored = new Date(updated_at).toUTCString()
  const isNewer = Date.parse(stored) > Date.parse(since) // false for what is no date
  if (isNewer) throw new AppError('precondition_failed', `If-Unmodified-Since: the content is of ${stored}`)
}

/** The entity tags of a list; a weak one keeps its `W/`. */
const tagsOf = (list: string): string[] => [...list.matchAll(/(?:W\/)?"[^"]*"/g)].map(([tag]) => tag)

export interface Range {
  /** Both ends included. */
  readonly from: number
  readonly to: number
}

/**
 * Parses a `Range` header (RFC 9110, 14.2). Returns null for an invalid header or several ranges, which the
 * server may ignore, and `'none'` if the range is outside the content.
 */
export const rangeOf = (header: string, size: number): Range | 'none' | null => {
  const [, first = '', last = ''] = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header) ?? []
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

/**
 * Whether `If-Range` allows a range: the client's partial copy is of the current content. A date never does, because other
 * content of the same second has the same date (RFC 9110, 13.1.5: a strong validator).
 */
export const isSame = (ifRange: string, etag: string): boolean => ifRange === '' || ifRange === etag
