import { StringDecoder } from 'node:string_decoder'
import type { StoredJson } from '../events/rawJson.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { Content } from './blobContent.ts'
import { openStored } from './jsonContent.ts'

/** Converts the parts of a text to the bytes that are sent. Throws if the text cannot be converted. */
export type Convert = (parts: AsyncIterable<string>) => AsyncIterable<Buffer>

/**
 * Opens a text in the blobs, which is read while it is sent, so that no large text is in memory; any other value is its
 * JSON. The blob is read twice: its size, and whether it can be converted, must be known before the reply begins.
 */
export const openText = async (
  blobs: Pick<Blobs, 'get'>,
  stored: StoredJson,
  convert: Convert,
): Promise<Content & { readonly start: string }> => {
  const { start, size } = await measured(await openStored(blobs, stored), convert)
  const { chunks, close } = await openStored(blobs, stored)
  return { start, size, chunks: convert(textParts(chunks)), close }
}

const measured = async ({ chunks, close }: Content, convert: Convert) => {
  let start = ''
  let size = 0
  const noted = async function* () {
    for await (const part of textParts(chunks)) {
      if (start === '') start = part
      yield part
    }
  }
  try {
    for await (const bytes of convert(noted())) size += bytes.length
    return { start, size }
  } finally {
    close()
  }
}

/** Yields the text in the JSON of a text, without its quotes and escapes. The JSON is valid: it was checked when it was stored. */
export async function* textParts(json: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let isText: boolean | undefined
  let rest = ''
  for await (const bytes of json) {
    rest += decoder.write(bytes)
    if (rest === '') continue
    if (isText === undefined) {
      isText = rest.startsWith('"')
      if (isText) rest = rest.slice(1)
    }
    const end = isText ? endOfWhole(rest) : rest.length
    if (end > 0) yield isText ? unescaped(rest.slice(0, end)) : rest
    rest = rest.slice(end)
  }
  if (isText && rest !== '"') yield unescaped(rest.slice(0, -1))
}

const unescaped = (escaped: string): string => JSON.parse(`"${escaped}"`) as string

/** Characters of `\u` with its digits. */
const UNICODE_ESCAPE = 6
const HIGH_SURROGATE = /\\u[Dd][89ABab][\dA-Fa-f]{2}$/

/** Where the last whole character that is surely not the closing quote ends. An escaped pair of surrogates is one. */
const endOfWhole = (escaped: string): number => {
  let after = 0
  for (;;) {
    const at = escaped.indexOf('\\', after)
    if (at < 0) break
    const end = at + (escaped[at + 1] === 'u' ? UNICODE_ESCAPE : 2)
    if (end > escaped.length) return endBefore(escaped, at)
    after = end
  }
  if (after === escaped.length) return endBefore(escaped, after)
  return escaped.endsWith('"') ? endBefore(escaped, escaped.length - 1) : escaped.length
}

const endBefore = (escaped: string, end: number): number => {
  const isHigh = HIGH_SURROGATE.test(escaped.slice(Math.max(0, end - UNICODE_ESCAPE), end))
  return isHigh ? end - UNICODE_ESCAPE : end
}
