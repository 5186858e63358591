import { AppError } from '../../errors.ts'

/** The names of organizations and environments are DNS labels. */
export const LABEL_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'

/** The rule in words, for error messages. */
export const LABEL_RULE = '1 to 63 lower-case letters, digits and hyphens'

const LABEL = new RegExp(LABEL_PATTERN)

/** Throws `bad_request` that names the field unless the text is a DNS label. */
export const checkLabel = (field: string, text: string): void => {
  if (!LABEL.test(text))
    throw new AppError(
      'bad_request',
      `${field}: expected ${LABEL_RULE}, got ${JSON.stringify(text.slice(0, 100))}`,
    )
}
