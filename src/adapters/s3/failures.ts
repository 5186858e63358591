import { S3Errors } from '@bradenmacdonald/s3-lite-client'
import { AppError, messageOf } from '../../errors.ts'

/** The code that S3 gave an error, else undefined. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof S3Errors.ServerError ? error.code : undefined

export const statusOf = (error: unknown): number | undefined =>
  error instanceof S3Errors.ServerError ? error.statusCode : undefined

export const isMissing = (error: unknown): boolean =>
  statusOf(error) === 404 && codeOf(error) !== 'NoSuchBucket'

/** Whether the same request may succeed a moment later: S3 is busy or broken, or the network is. */
export const mayPass = (error: unknown): boolean => {
  if (error instanceof AppError) return error.retryable
  const status = statusOf(error)
  return status === undefined || status >= 500 || status === 429 || codeOf(error) === 'RequestTimeout'
}

const BAD_PARTS = new Set<unknown>(['InvalidPart', 'InvalidPartOrder', 'EntityTooSmall', 'MalformedXML'])

/** Any failure of a request as the port's error. */
export const appErrorOf = (error: unknown, place: string): AppError => {
  if (error instanceof AppError) return error
  const code = codeOf(error)
  if (code === 'NoSuchUpload') return new AppError('not_found', 'No such upload', { cause: error })
  if (BAD_PARTS.has(code)) {
    return new AppError('bad_request', `The parts do not make a blob: ${messageOf(error)}`, { cause: error })
  }
  return new AppError('unavailable', `The blobs in ${place} are not there: ${reasonOf(error)}`, {
    cause: error,
  })
}

/** What stops the service from starting, and how to mend it; else as above. */
export const openingErrorOf = (error: unknown, place: string): AppError => {
  const code = codeOf(error)
  if (code === undefined || mayPass(error)) return appErrorOf(error, place)
  return new AppError('bad_request', `SVC_BLOBS: ${place} refused (${code}): ${mendOf(code)}`, {
    cause: error,
  })
}

const mendOf = (code: string): string => {
  switch (code) {
    case 'NoSuchBucket':
      return 'create the bucket, or correct its name in the URL'
    case 'InvalidAccessKeyId':
    case 'SignatureDoesNotMatch':
      return 'check key and secret in the URL; what means something in URLs is written %2F for /, %2B for +'
    case 'AccessDenied':
      return 'the key needs to list the bucket, and to get, put and delete objects and multipart uploads in it'
    case 'RequestTimeTooSkewed':
      return 'set the clock of this machine'
    default:
      return 'check host, region and tls in the URL'
  }
}

/** `fetch` says what happened in the cause only. */
const reasonOf = (error: unknown): string => {
  const code = codeOf(error)
  if (code !== undefined) return `${code}, ${messageOf(error)}`
  const { cause } = (error ?? {}) as { cause?: unknown }
  return messageOf(cause ?? error) || String((cause as { code?: unknown } | undefined)?.code ?? error)
}
