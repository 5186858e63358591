import { AppError } from '../../errors.ts'

/** The names of organizations and environments are DNS labels. */
export const LABEL_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'

const LABEL = new RegExp(LABEL_PATTERN)

/** Throws `bad_request` that names the field unless the text is a DNS label. */
export const checkLabel = (field: string, text: string): void => {
  if (!LABEL.test(text))
    throw new AppError(
      'bad_request',
      `${field}: expected 1 to 63 lower-case letters, digits and hyphens, got ${JSON.stringify(text.slice(0, 100))}`,
    )
}
