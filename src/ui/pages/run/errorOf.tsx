import type { Run, Thrown } from '../../../client/index.ts'
import { Json } from '../../parts/json.tsx'

/** The error of a run with the line of the user's source that threw it. */
export const ErrorOf = ({ error }: { readonly error: NonNullable<Run['error']> }) => {
  const { code, name, message, location, fields, cause, stack } = error
  return (
    <section class="error" aria-labelledby="error">
      <h2 id="error">
        {name ?? 'Error'} <code>{code}</code>
      </h2>
      <p class="message">{message}</p>
      {location && (
        <figure>
          <figcaption>
            <code>
              {location.file}:{location.line}:{location.column}
            </code>
          </figcaption>
          {location.snippet !== undefined && (
            <pre tabIndex={0}>
              <span class="line">{location.line}</span> {location.snippet}
            </pre>
          )}
        </figure>
      )}
      {fields && <Json value={fields} name="fields of the error" />}
      {cause && <Cause cause={cause} />}
      {stack !== undefined && (
        <details>
          <summary>Stack</summary>
          <pre tabIndex={0}>{stack}</pre>
        </details>
      )}
    </section>
  )
}

const Cause = ({ cause }: { readonly cause: Thrown }) => (
  <p>
    Caused by {cause.name ?? 'an error'}: {cause.message}
  </p>
)
