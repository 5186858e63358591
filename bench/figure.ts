/** One measured number, with its target if there is one. */
export interface Figure {
  readonly what: string
  readonly value: number
  readonly unit: string
  readonly atLeast?: number
  readonly atMost?: number
}

export const show = ({ what, value, unit, atLeast, atMost }: Figure): string => {
  const bar = atLeast !== undefined ? `bar ≥ ${atLeast}` : atMost !== undefined ? `bar ≤ ${atMost}` : ''
  const reached = atLeast !== undefined ? value >= atLeast : atMost !== undefined ? value <= atMost : true
  const number = value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
  return `${what.padEnd(52)} ${number.padStart(10)} ${unit.padEnd(6)} ${bar}${reached ? '' : '   MISSED'}`
}
