import type { ComponentChildren } from 'preact'

/** What is known of one thing, by name. Absent values are left out. */
export const Facts = ({ of }: { readonly of: Readonly<Record<string, ComponentChildren>> }) => (
  <dl class="facts">
    {Object.entries(of)
      .filter(([, value]) => value !== undefined && value !== null && value !== false)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)
