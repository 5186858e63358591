import { BadMetadata, expected, textOf } from './metadataFields.ts'

const URL_SAFE = /^[A-Za-z0-9._-]{1,128}$/

/** The service that groups webhooks or tools, and that permissions name. Throws `BadMetadata`. */
export const serviceNameOf = (value: unknown, what: string): string => {
  const service = textOf(value, what)
  if (URL_SAFE.test(service) && !/^\.+$/.test(service)) return service
  throw new BadMetadata(expected(what, 'to consist of letters, digits, "-", "_" and "."', service))
}
