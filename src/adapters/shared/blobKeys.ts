import { AppError } from '../../errors.ts'
import { MAX_PARTS, type UploadedPart } from '../../ports/blobs.ts'

const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,250}$/
const MAX_KEY_LENGTH = 900

/** Returns the key. Throws `bad_request` if it is invalid. */
export const checkedKey = (key: string): string => {
  if (key.length <= MAX_KEY_LENGTH && key.split('/').every((segment) => SEGMENT.test(segment))) return key
  throw new AppError(
    'bad_request',
    `Expected a blob key of segments [A-Za-z0-9._-], got ${JSON.stringify(key.slice(0, 80))}`,
  )
}

/** Whether a key can begin with this prefix. Some engines refuse a list with any other prefix. */
export const mayBeginKey = (prefix: string): boolean => {
  const [open = '', ...folders] = prefix.split('/').toReversed()
  return (
    /^[A-Za-z0-9._-]*$/.test(open) &&
    !['.', '..'].includes(open) &&
    folders.every((each) => SEGMENT.test(each))
  )
}

/** Returns the number. Throws `bad_request` if it is invalid. */
export const checkedPartNumber = (partNumber: number): number => {
  if (Number.isInteger(partNumber) && partNumber >= 1 && partNumber <= MAX_PARTS) return partNumber
  throw new AppError('bad_request', `Expected a part number from 1 to ${MAX_PARTS}, got ${partNumber}`)
}

/** Returns the parts of an upload. Throws `bad_request` unless numbers ascend and all etags have our format. */
export const checkedParts = (parts: readonly UploadedPart[]): readonly UploadedPart[] => {
  if (parts.length === 0) throw new AppError('bad_request', 'Expected parts, got none')
  let last = 0
  for (const { part_number: number, etag } of parts) {
    if (checkedPartNumber(number) <= last) {
      throw new AppError('bad_request', `Expected parts in ascending order, got ${number} after ${last}`)
    }
    if (!/^[A-Za-z0-9._+/=-]{1,200}$/.test(etag)) throw badPart(number)
    last = number
  }
  return parts
}

export const badPart = (partNumber: number): AppError =>
  new AppError('bad_request', `Expected part ${partNumber} with the etag that its upload returned`, {
    data: { part_number: partNumber },
  })

/** Passes the bytes of a part. Throws `bad_request` if there are more or fewer than `size`. */
export async function* sizedBytes(
  content: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > size) break
    yield chunk
  }
  if (bytes === size) return
  const got = bytes > size ? 'more' : `${bytes}`
  throw new AppError('bad_request', `Expected a part of ${size} bytes, got ${got}`)
}
