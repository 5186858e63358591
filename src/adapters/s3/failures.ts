import { S3Errors } from '@bradenmacdonald/s3-lite-client'
import { AppError, messageOf } from '../../errors.ts'
import { rootOf, textOf } from './xml.ts'

/** Returns the error code of S3, if there is one. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof S3Errors.ServerError ? error.code : undefined

export const statusOf = (error: unknown): number | undefined =>
  error instanceof S3Errors.ServerError ? error.statusCode : undefined

/**
 * Whether S3 says that the object does not exist. Any other 404 says nothing about the object: it comes from a proxy, or is about the
 * bucket.
 */
export const isMissing = (error: unknown): boolean => statusOf(error) === 404 && codeOf(error) === 'NoSuchKey'

/** Whether the same request may succeed later, because S3 or the network is busy or broken. */
export const mayPass = (error: unknown): boolean => {
  if (error instanceof AppError) return error.retryable
  const status = statusOf(error)
  return status === undefined || status >= 500 || status === 429 || codeOf(error) === 'RequestTimeout'
}

/**
 * Throws unless the reply has this outermost element, as a whole: S3 may send status 200 before it knows the outcome, and
 * report the failure in the body.
 */
export const demandRoot = (xml: string, name: string): void => {
  if (rootOf(xml) === name && xml.trimEnd().endsWith(`</${name}>`)) return
  const [code, message] = [
    textOf(xml, 'Code') ?? 'InternalError',
    textOf(xml, 'Message') ?? 'no reason given',
  ]
  throw new S3Errors.ServerError(500, code, message)
}

/** Throws `bad_request` for a list from another kind of server: one with web pages may have one for every path. */
export const demandS3 = (xml: string, place: string): void => {
  if (['ListBucketResult', 'Error'].includes(rootOf(xml) ?? '')) return demandRoot(xml, 'ListBucketResult')
  throw new AppError(
    'bad_request',
    `SVC_BLOBS: ${place} does not answer as S3: check host and port in the URL`,
  )
}

const BAD_PARTS = new Set<unknown>(['InvalidPart', 'InvalidPartOrder', 'EntityTooSmall', 'MalformedXML'])

/** Converts any failure of a request to an error of the port. */
export const appErrorOf = (error: unknown, place: string): AppError => {
  if (error instanceof AppError) return error
  const code = codeOf(error)
  if (code === 'NoSuchUpload') return new AppError('not_found', 'No such upload', { cause: error })
  if (BAD_PARTS.has(code)) {
    return new AppError('bad_request', `The parts cannot be joined to a blob: ${messageOf(error)}`, {
      cause: error,
    })
  }
  return new AppError('unavailable', `The blobs in ${place} are unavailable: ${reasonOf(error)}`, {
    cause: error,
  })
}

/** The error for blobs that cannot be opened. It explains the remedy if waiting does not help. */
export const openingErrorOf = (error: unknown, place: string): AppError => {
  const code = codeOf(error)
  if (code === undefined || mayPass(error)) return appErrorOf(error, place)
  return new AppError('bad_request', `SVC_BLOBS: ${place} refused (${code}): ${remedyFor(code)}`, {
    cause: error,
  })
}

const remedyFor = (code: string): string => {
  switch (code) {
    case 'NoSuchBucket':
      return 'create the bucket, or correct its name in the URL'
    case 'InvalidAccessKeyId':
    case 'SignatureDoesNotMatch':
      return 'check key and secret in the URL; special characters must be URI-encoded (%2F for /, %2B for +)'
    case 'AccessDenied':
      return 'allow the key to list the bucket and to get, put and delete objects and multipart uploads'
    case 'RequestTimeTooSkewed':
      return 'correct the clock of this machine'
    default:
      return 'check host, region and tls in the URL'
  }
}

/** `fetch` gives the reason only in the cause. */
const reasonOf = (error: unknown): string => {
  const code = codeOf(error)
  if (code !== undefined) return `${code}, ${messageOf(error)}`
  const { cause } = (error ?? {}) as { cause?: unknown }
  return messageOf(cause ?? error) || String((cause as { code?: unknown } | undefined)?.code ?? error)
}
