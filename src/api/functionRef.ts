import { AppError } from '../errors.ts'

/** Throws `bad_request` that names the field unless the text is a function reference. */
export const demandRef = (field: string, text: string): void => {
  if (!/^[^/]+\/[^/]+$/.test(text))
    throw new AppError('bad_request', `${field}: expected a function as ns/var, got "${text.slice(0, 60)}"`)
}
