{{/*
The groups of the shipped rule files with the values' say over them: thresholds, alerts left out, overrides, the
base of the runbooks and labels for routing. Names that no rule has are refused: a slip must not pass in silence.
*/}}
{{- define "resweep.ruleGroups" -}}
{{- $values := .Values.prometheusRule -}}
{{- $unknown := dict -}}
{{- range $name, $_ := $values.thresholds }}{{- $_ := set $unknown (printf "thresholds.%s" $name) "" }}{{- end -}}
{{- range $name, $_ := $values.overrides }}{{- $_ := set $unknown (printf "overrides.%s" $name) "" }}{{- end -}}
{{- range $name := $values.disabled }}{{- $_ := set $unknown (printf "disabled.%s" $name) "" }}{{- end -}}
{{- $groups := list -}}
{{- range $path, $_ := .Files.Glob "rules/{recording,alerts}/*.yaml" -}}
{{- range $group := (fromYaml ($.Files.Get $path)).groups -}}
{{- $rules := list -}}
{{- range $rule := $group.rules -}}
{{- if has $rule.alert $values.disabled -}}
{{- $_ := unset $unknown (printf "disabled.%s" $rule.alert) -}}
{{- else -}}
{{- if $rule.alert -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s/%s" (trimSuffix "/" $values.runbookBaseUrl) $rule.alert) -}}
{{- with get $values.overrides $rule.alert -}}
{{- $_ := unset $unknown (printf "overrides.%s" $rule.alert) -}}
{{- if .severity }}{{- $_ := set $rule.labels "severity" .severity }}{{- end -}}
{{- if .for }}{{- $_ := set $rule "for" .for }}{{- end -}}
{{- with .labels }}{{- $_ := mergeOverwrite $rule.labels . }}{{- end -}}
{{- end -}}
{{- with $values.additionalAlertLabels }}{{- $_ := merge $rule.labels . }}{{- end -}}
{{- else if or (hasSuffix ":threshold" $rule.record) (hasSuffix ":minimum" $rule.record) -}}
{{- $name := regexReplaceAll "^resweep:(.*):(threshold|minimum)$" $rule.record "${1}" -}}
{{- if hasKey $values.thresholds $name -}}
{{- $_ := unset $unknown (printf "thresholds.%s" $name) -}}
{{- $_ := set $rule "expr" (printf "vector(%v)" (get $values.thresholds $name)) -}}
{{- end -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- if $rules }}{{- $groups = append $groups (dict "name" $group.name "rules" $rules) }}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $unknown -}}
{{- fail (printf "prometheusRule.%s: there is no such rule; docs/alerts.md lists them." (keys $unknown | sortAlpha | first)) -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end -}}
