package tools

import (
	"context"
	"testing"
)

func TestNotifierTravelsWithTheContext(t *testing.T) {
	if NotifierFrom(context.Background()) != nil {
		t.Fatal("a context without a notifier has one")
	}
	var got string
	ctx := WithNotifier(context.Background(), func(method string, params any) {
		got = method + " " + params.(string)
	})
	NotifierFrom(ctx)("m", "p")
	if got != "m p" {
		t.Fatalf("the notifier saw %q", got)
	}
}
