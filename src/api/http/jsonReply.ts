import { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Content } from '../../content/blobContent.ts'
import type { Payloads } from '../../content/payloads.ts'
import { StoredJson } from '../../events/rawJson.ts'

/**
 * Sends a value as JSON. Its parts in the blobs are read only as fast as the client receives them. The type is set at once, so
 * headers that the caller sets afterwards replace it.
 */
export const sendJson = async (
  ctx: Context,
  value: unknown,
  payloads: Pick<Payloads, 'openJson'>,
): Promise<void> => {
  ctx.type = 'application/json'
  sendContent(ctx, await payloads.openJson(value))
}

/** Sends content as fast as the client receives it. */
export const sendContent = (ctx: Context, content: Content): void => {
  ctx.body = Readable.from(content.chunks, { objectMode: false })
  ctx.length = content.size
  if (ctx.res.closed) return content.close() // the client left meanwhile, so the body is not read
  ctx.res.once('close', content.close) // also of a HEAD request, whose body is not read
}

/** The field of an item that remains in the blobs. Part of a stored answer, so it is plain JSON. */
export interface StoredField {
  readonly name: string
  readonly key: string
  /** Where the value begins and ends in the blob. */
  readonly from?: number
  readonly size: number
}

/** Returns the field of an item that remains in the blobs, if it has one. */
export const storedFieldOf = (data: unknown): StoredField | undefined => {
  if (typeof data !== 'object' || data === null) return undefined
  for (const [name, value] of Object.entries(data))
    if (value instanceof StoredJson) return { name, key: value.key, from: value.from, size: value.to }
  return undefined
}

/** Adds the field to the item of a body, at its place. */
export const withStored = (body: unknown, { name, key, from, size }: StoredField): unknown => {
  const { data, ...rest } = body as { data: Record<string, unknown> }
  return { data: { ...data, [name]: new StoredJson({ key, size }, from, size) }, ...rest }
}
