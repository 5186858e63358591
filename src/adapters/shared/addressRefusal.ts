import { AppError } from '../../errors.ts'
import { shownValue } from '../../secrets/shownValue.ts'

/** Returns the `bad_request` for the address of an engine, without its secrets. */
export const addressRefusal =
  (setting: string, url: string) =>
  (what: string): AppError =>
    new AppError('bad_request', `${setting}: ${what}; got ${shownValue(url)}`)

/** Decodes a part of an address. Throws `refusal` if it is not URI-encoded. */
export const decodedPart = (text: string, refusal: () => AppError): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refusal()
  }
}
